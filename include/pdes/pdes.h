// A conservative parallel discrete event simulation engine.  A model includes this header; docs/pdes.md has the tutorial.
#pragma once

#include "pdes/context.h"
#include "pdes/options.h"
#include "pdes/random.h"
#include "pdes/report.h"
#include "pdes/result.h"
#include "pdes/simulation.h"
#include "pdes/timer.h"
#include "pdes/vacancies.h"
