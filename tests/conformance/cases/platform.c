/* The machine's settings: huge pages on and off, and commit accounting as strict as it can be had without a VM. */
#include <sys/prctl.h>

#include "exhaust.h"

static void modest_use_stays_modest(void) {
  size_t before = resident_bytes();
  Link* lists[8];
  size_t taken[8];
  for (size_t i = 0; i < COUNT_OF(lists); i++) lists[i] = take_until_none(16u << i, 8000 >> i, &taken[i]);
  REQUIRE_BELOW(growth(resident_bytes(), before), 24 * MIB);
  for (size_t i = 0; i < COUNT_OF(lists); i++) give_back_all(lists[i], 16u << i, taken[i]);
}

CASE(no_thp) {
  REQUIRE(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
  modest_use_stays_modest();
}

static int accounted(const char* flags) { return strstr(flags, " ac") != NULL; }

/* What vm.overcommit_memory=2 would charge: every writable private mapping, reserved with MAP_NORESERVE or not. */
CASE(overcommit_charge) {
  free(malloc(100));
  FILE* maps = fopen("/proc/self/smaps", "r");
  REQUIRE(maps != NULL);
  char line[512];
  size_t charged = 0;
  size_t size = 0;
  int writable = 0;
  while (fgets(line, sizeof line, maps) != NULL) {
    size_t begin;
    size_t end;
    char rights[5];
    if (sscanf(line, "%zx-%zx %4s", &begin, &end, rights) == 3) {
      size = end - begin;
      writable = rights[1] == 'w' && rights[3] == 'p';
    } else if (strncmp(line, "VmFlags:", 8) == 0 && (writable || accounted(line))) {
      charged += size;
    }
  }
  fclose(maps);
  REQUIRE_BELOW(charged, 128 * MIB);
}

/* RLIMIT_DATA counts writable private mappings as strict accounting does, so small reservations must do. */
CASE(overcommit_limit) {
  free(malloc(100));
  limit(RLIMIT_DATA, 160 * MIB);
  size_t taken;
  Link* list = take_until_none(3000, 10000, &taken);
  REQUIRE(taken == 10000);
  give_back_all(list, 3000, taken);
}

CASE(thp_as_set) { modest_use_stays_modest(); }

CASE_MAIN()
