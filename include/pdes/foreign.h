/* The simulation engine for other languages: a C interface, in the shared library libhmalloc-pdes.so.  States and events
 * are records of fixed size, handlers are pointers to functions.  A model that is written with it gets the digest of the same
 * model in C++ (docs/pdes-python.md is about the one in Python).
 *
 * Errors.  A simulation keeps its first error: what is called after it does nothing, hm_pdes_run returns null, and
 * hm_pdes_error says what it was.  So only the run has to be looked at.
 *
 * Threads.  A simulation is used by one thread at a time, except for hm_pdes_stop, hm_pdes_save and hm_pdes_inject.  Handlers are called
 * by several threads, those of one LP never by two at a time. */
#ifndef HMALLOC_PDES_FOREIGN_H
#define HMALLOC_PDES_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hm_pdes hm_pdes;               /* a simulation */
typedef struct hm_pdes_report hm_pdes_report; /* where the statistics of an LP go */

/* What a handler is given: the LP, and the time of the event. */
typedef struct hm_pdes_lp {
  double now, end, lookahead;
  uint32_t id, lp_count; /* of all LPs */
  uint64_t* splitmix; /* the LP's own stream, state and step, for compilers that draw inline; null with generator=philox */
} hm_pdes_lp;

/* Handles an event, or starts the LP (then event is null).  Returns whether it could: 0 ends the run. */
typedef int (*hm_pdes_handler)(hm_pdes_lp* lp, void* state, const void* event);
/* Reports the statistics of an LP at the end; called by the thread that runs the simulation, in the order of LPs.  Of an LP
 * that ends before (hm_pdes_vacate): then, by the thread that it is on. */
typedef int (*hm_pdes_reporter)(hm_pdes_report* report, void* state);

/* Options as words, such as "end=80 lookahead=0.1 threads=2 queue=heap": those of docs/pdes.md that are about the
 * simulation and about how it is run, checkpoints, trace and what is measured too, times as numbers of seconds; and model=, a name by which a checkpoint
 * of another model is refused.  A backslash takes the next character as it is, such as a space in the name of a file.  Null if
 * there is no memory. */
hm_pdes* hm_pdes_new(const char* options);
void hm_pdes_free(hm_pdes* simulation);

/* Adds a type of event, before any LPs; they are numbered from 0.  size: of the payload, at most 32,760 bytes. */
void hm_pdes_event_type(hm_pdes* simulation, const char* name, size_t size);
/* The same of events that a timer can cancel: the last bytes of their payloads, and of its size, are an hm_pdes_setting. */
void hm_pdes_cancellable_type(hm_pdes* simulation, const char* name, size_t size);
/* The same of events that make an LP where nobody is (hm_pdes_add_vacant). */
void hm_pdes_making_type(hm_pdes* simulation, const char* name, size_t size);

typedef struct hm_pdes_class {
  const char* name;
  size_t size;                     /* of a state, which is aligned to 16 bytes */
  uint32_t streams;                /* random streams of an LP besides its own, numbered from 1 */
  uint32_t histograms;             /* that an LP has (hm_pdes_histogram) */
  uint32_t vacancies;              /* likewise (hm_pdes_vacancies) */
  hm_pdes_handler start;           /* sends first events; may be null */
  const hm_pdes_handler* handlers; /* by type of event; null for those that it must not get */
  hm_pdes_reporter report;         /* may be null */
  const void* states;              /* at the start: of one LP after another, or of each if shared; null: zeros */
  int shared;
  void* finals;        /* where the states are put at the end, one after another; may be null */
  const char* unsaved; /* why no checkpoint can have its LPs; null: it can, a state is plain data
                        * (but for what hm_pdes_on_checkpoint saves) */
} hm_pdes_class;

/* Adds LPs of a class; their ids follow those of the LPs before.  All but finals may go away after the call, those only
 * after the run. */
void hm_pdes_add(hm_pdes* simulation, const hm_pdes_class* lps, uint32_t count);
/* Adds ids where nobody is at first (pdes/vacancies.h).  An event of a making type that the class handles makes an LP there,
 * which handles it; `start` is not called.  Its state is what the class has for the id.  Its stream 0 goes on from who was
 * there before, the others are its alone.  drops: what others send to nobody is dropped and counted; otherwise it ends the
 * run.  there: null, or an array that must live as long as finals; at the end it is 1 for each id where an LP is, and only
 * those have finals. */
void hm_pdes_add_vacant(hm_pdes* simulation, const hm_pdes_class* lps, uint32_t count, int drops, unsigned char* there);

/* Before the run.  Told of each event that nobody gets, which the result counts as undelivered: whatever is kept for it can go.
 * By the thread that the id is on. */
void hm_pdes_on_undelivered(hm_pdes* simulation, void (*call)(void* context, uint32_t type, const void* event),
                            void* context);

/* For sync=neighbours and partition=graph: LP i may send to those of to[from[i]] to to[from[i + 1] - 1].  In the graph, one
 * that is named twice counts twice.  The arrays must live until the end of the run. */
void hm_pdes_set_neighbours(hm_pdes* simulation, const uint64_t* from, const uint32_t* to);

typedef struct hm_pdes_progress {
  double wall_s, now;
  uint64_t events, pending, bytes;
  double window; /* length of the last one; 0: there are no windows */
  uint64_t windows;
  /* Of each thread of this process, so far. */
  uint64_t thread_count;
  const double* blocked_s;
  const uint64_t* thread_events;
} hm_pdes_progress;
/* Called on the thread that runs the simulation, every `interval` seconds (an option; 0.1) or somewhat later. */
void hm_pdes_on_progress(hm_pdes* simulation, void (*call)(void* context, const hm_pdes_progress* progress), void* context);

/* Called on that thread when a checkpoint has been written (error is null), or could not be, which does not end the run.
 * now: no event before it is left. */
void hm_pdes_on_save(hm_pdes* simulation, void (*call)(void* context, double now, const char* error), void* context);

/* What of a model lies in no state and no payload, where only numbers stand for it, is saved with checkpoints, too.  save,
 * called while no handler runs, returns its bytes, which stay until the next call; null if it cannot, and *why_not says why.
 * load, called before there are LPs of a run that goes on, takes the bytes; it returns null, or why it cannot.  Both are
 * called on the thread that runs the simulation. */
typedef const void* (*hm_pdes_saver)(void* context, size_t* size, const char** why_not);
typedef const char* (*hm_pdes_loader)(void* context, const void* bytes, size_t size);
void hm_pdes_on_checkpoint(hm_pdes* simulation, hm_pdes_saver save, hm_pdes_loader load, void* context);

/* From any thread or signal handler: the run ends soon, with a partial result; it is saved first if it has a checkpoint. */
void hm_pdes_stop(hm_pdes* simulation);
/* The same for a checkpoint: it is written soon, and the run goes on. */
void hm_pdes_save(hm_pdes* simulation);

/* An event from outside of the simulation, as a run took it.  The payload has the size of its type. */
typedef struct hm_pdes_injected {
  double time;
  uint32_t to, type, priority;
  const void* payload;
} hm_pdes_injected;
/* From any thread, before the run (when all LPs are there) or while it goes on: LP `to` executes the event at the time that
 * real time has come to (the option pace).  1; 0 if the run is over; -1 if this cannot be, as hm_pdes_inject_error says. */
int hm_pdes_inject(hm_pdes* simulation, int64_t to, uint32_t type, const void* event, uint32_t priority);
const char* hm_pdes_inject_error(void); /* of this thread's last that was -1 */
/* Before the run: what another run of the model took (hm_pdes_result) comes at the same times again. */
void hm_pdes_replay(hm_pdes* simulation, const hm_pdes_injected* events, size_t count);

enum hm_pdes_kind { HM_PDES_COUNT, HM_PDES_SUM, HM_PDES_TALLY, HM_PDES_LEVEL, HM_PDES_HISTOGRAM, HM_PDES_INTERVAL };
/* The mean is sum / count, but of a level sum / time. */
typedef struct hm_pdes_statistic {
  const char* name;
  int64_t kind, count; /* of observations; of batches, for an interval; of LPs, for a level */
  double sum, least, most;
  double time;         /* of a level: of all LPs together */
  double half_width;   /* of an interval: the mean is within it, either way, with a confidence of 95 % */
  uint64_t batch_size; /* of an interval */
  /* Of a histogram: the steps in which there is something, in the order of their values, and how many observations. */
  uint64_t step_count;
  const int32_t* steps;
  const uint64_t* step_counts;
} hm_pdes_statistic;
/* Of a histogram, to 2 %; 0 < q < 1.  Not a number if there is no memory. */
double hm_pdes_quantile(const hm_pdes_statistic* histogram, double q);

/* With lookahead-report=1: delays of events between LPs; one thread enforces no lookahead then. */
typedef struct hm_pdes_link { /* from a class to a class, by a type of event */
  const char *from, *to, *event;
  uint64_t count;
  double smallest, suggested_lookahead;
} hm_pdes_link;
typedef struct hm_pdes_delays {
  uint64_t count;
  double smallest, mean, largest, p1, p50, p99;
  double suggested_lookahead; /* by what was seen; 0: there is none */
  uint64_t link_count;
  const hm_pdes_link* links; /* the smallest delay first */
} hm_pdes_delays;

/* Of this process. */
typedef struct hm_pdes_thread {
  uint64_t events;
  double working_s, blocked_s; /* executing and sorting events; waiting for other threads and ranks */
  uint64_t waited_on_count;    /* 0 if it is not known for whom it waited, or there was nobody to wait for */
  const double* waited_on;     /* seconds, for each thread */
} hm_pdes_thread;

typedef struct hm_pdes_result {
  uint64_t digest;
  double reached, wall_s;
  uint64_t stopped;
  uint64_t events, sent, crossed, dropped, windows, peak_pending, peak_bytes;
  uint64_t events_before; /* of the events: executed before the run was resumed */
  uint64_t checkpoints;   /* written */
  uint64_t cancelled;     /* of the events: their timer had been cancelled or set anew, and nothing was done */
  const uint64_t* events_by_type;
  uint64_t statistic_count;
  const hm_pdes_statistic* statistics;
  uint64_t injected_count;
  const hm_pdes_injected* injected; /* what came from outside, for hm_pdes_replay */
  uint64_t made, ended;             /* LPs that come and go */
  uint64_t undelivered;             /* of the events: the LP had ended, or none was there, and nothing was done */
  uint64_t gathered;                /* of the windows: executed by one thread for all */
  uint64_t rank;                    /* of this process; 0: the first, or the only one */
  hm_pdes_delays delays;
  /* With critical-path=1: events of the longest chain of which each had to wait for the one before, and where it ends. */
  uint64_t path_events;
  const char* path_last;
  uint64_t trace_lost;     /* spans that the trace had no room for */
  const char* trace_error; /* why the trace could not be written to its end; empty: it could */
  uint64_t ended_by_model, rank_count;
  uint64_t thread_count;
  const hm_pdes_thread* threads;
} hm_pdes_result;

/* Whether this process was started, by mpirun or its like, as one of several ranks. */
int hm_pdes_has_ranks(void);
/* Runs it, once.  The result lives as long as the simulation; null after an error.  Of several ranks each makes the same
 * simulation, of the same options, and runs it, or all have an error; the first then has the whole result and all finals,
 * the others have what is theirs.  A rank has one run at a time: another one has an error. */
const hm_pdes_result* hm_pdes_run(hm_pdes* simulation);
const char* hm_pdes_error(const hm_pdes* simulation); /* empty if there is none */

/* ---- For handlers.  What is wrong is kept as the error, and ends the run when the handler returns. */

/* delay: finite; to another LP at least the lookahead, to the LP itself at least 0.  event: may be null if its type has no
 * bytes.  priority: 0 to 63. */
void hm_pdes_send(hm_pdes_lp* lp, int64_t to, double delay, uint32_t type, const void* event, uint32_t priority);
/* A member of the LP's state, zeros at first; it must not be copied over another.  set: whether an event is on its way, or
 * would be if its time were not beyond the end; who clears it cancels the event. */
typedef struct hm_pdes_timer {
  uint32_t life, set;
} hm_pdes_timer;
/* Which setting of a timer an event is of.  With hm_pdes_send and from outside: place is HM_PDES_NO_TIMER, life 0. */
typedef struct hm_pdes_setting {
  uint32_t place, life;
} hm_pdes_setting;
#define HM_PDES_NO_TIMER UINT32_MAX
/* Sends it to the LP itself, unless the timer is cancelled or set anew before.  Writes the setting at its end. */
void hm_pdes_set_timer(hm_pdes_lp* lp, hm_pdes_timer* timer, double delay, uint32_t type, void* event, uint32_t priority);
/* The run ends at now + delay, unless it ends earlier; at least the lookahead. */
void hm_pdes_end_after(hm_pdes_lp* lp, double delay);
/* This LP, at an id of hm_pdes_add_vacant, reports and ends when its handler returns. */
void hm_pdes_vacate(hm_pdes_lp* lp);
/* Numbers of one of the LP's streams; 0 is its own. */
uint64_t hm_pdes_bits(hm_pdes_lp* lp, uint32_t stream);
double hm_pdes_uniform(hm_pdes_lp* lp, uint32_t stream); /* in [0, 1) */
double hm_pdes_exponential(hm_pdes_lp* lp, uint32_t stream, double mean);
int64_t hm_pdes_integer(hm_pdes_lp* lp, uint32_t stream, int64_t n); /* in [0, n) */
/* For code that draws inline.  exponential(mean) is mean * exponential_of(bits()), which with e = exponential_edges() and
 * i = bits % 256 is (bits >> 11) * 2^-53 * e[i] if that is below e[i + 1], and a matter of more draws if not. */
double hm_pdes_exponential_of(hm_pdes_lp* lp, uint32_t stream, uint64_t bits);
const double* hm_pdes_exponential_edges(void); /* 257 of them */
/* The logarithm of x in (0, 1], the same on every machine, for distributions of one's own. */
double hm_pdes_natural_log(double x);
/* The handler's own error. */
void hm_pdes_fail(hm_pdes_lp* lp, const char* text);

/* ---- What an LP observes, as members of its state: those of pdes/statistics.h, which says how they change. */

typedef struct hm_pdes_tally {
  int64_t count;
  double sum, least, most; /* of none: +infinity and -infinity */
} hm_pdes_tally;
typedef struct hm_pdes_level {
  double value, began, since, least, most; /* at first least and most are the value */
  double before;                           /* the area until `since` */
} hm_pdes_level;
typedef struct hm_pdes_batch_means {
  uint64_t size, batches, in_open; /* size: observations in a batch, at least 1; in_open: in the one that is not complete */
  double open, sum, squares;       /* of the observations in that one; of the means of the others */
  double least, most;              /* of none: +infinity and -infinity */
} hm_pdes_batch_means;
double hm_pdes_half_width(const hm_pdes_batch_means* means);
/* Stands for a histogram, which grows, and so lies elsewhere. */
typedef struct hm_pdes_histogram {
  int32_t number; /* of the LP's, from 0 */
  int32_t place;  /* of this member in the state, bytes */
} hm_pdes_histogram;
/* Returns whether there was memory for it. */
int hm_pdes_histogram_add(const hm_pdes_histogram* histogram, double value);

/* Stands for ids that an LP may fill, pdes::Vacancies, which lie elsewhere, too; at first none. */
typedef struct hm_pdes_vacancies {
  int32_t number, place; /* as a histogram's */
} hm_pdes_vacancies;
/* The ids are from now on these.  Returns whether the LP has such a member, and there can be such ids. */
int hm_pdes_vacancies_set(const hm_pdes_vacancies* vacancies, int64_t first, int64_t count);
/* An id that is vacant; -1 if there is none. */
int64_t hm_pdes_vacancies_take(const hm_pdes_vacancies* vacancies);
/* Returns whether there was memory for it. */
int hm_pdes_vacancies_give_back(const hm_pdes_vacancies* vacancies, int64_t id);

/* ---- For reporters: pdes::Report's. */

uint32_t hm_pdes_report_id(const hm_pdes_report* report); /* of the LP that reports */
double hm_pdes_report_now(const hm_pdes_report* report);  /* when the run ended, or the LP before */
void hm_pdes_report_count(hm_pdes_report* report, const char* name, int64_t value);
void hm_pdes_report_sum(hm_pdes_report* report, const char* name, double value);
void hm_pdes_report_tally(hm_pdes_report* report, const char* name, const hm_pdes_tally* tally);
void hm_pdes_report_level(hm_pdes_report* report, const char* name, const hm_pdes_level* level);
void hm_pdes_report_histogram(hm_pdes_report* report, const char* name, const hm_pdes_histogram* histogram);
void hm_pdes_report_interval(hm_pdes_report* report, const char* name, const hm_pdes_batch_means* means);

#ifdef __cplusplus
}
#endif
#endif
