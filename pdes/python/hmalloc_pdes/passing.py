"""What handlers of LPs that come and go call, in machine code: compiled.py has all else."""

from numba import types
from numba.extending import intrinsic, overload_attribute, overload_method

from . import members
from .compiled import _BYTES, _DOUBLE, _INT32, _MEMBERS, _VOID, ContextType, ReportType, _call, _of_member


@intrinsic
def _vacate(typing, context):
    def code(target, builder, signature, arguments):
        _call(builder, "vacate", _VOID, *arguments)
        return target.get_dummy_value()

    return types.none(context), code


@overload_method(ContextType, "vacate")
def vacate(context):
    return lambda context: _vacate(context)


@intrinsic
def _report_now(typing, report):
    def code(target, builder, signature, arguments):
        return _call(builder, "report_now", _DOUBLE, *arguments)

    return types.float64(report), code


@overload_attribute(ReportType, "now")
def report_now(report):
    return lambda report: _report_now(report)


_VACANCIES = type(_MEMBERS[members.Vacancies])
_vacancies_take = _of_member("vacancies_take", types.int64)
_vacancies_give_back = _of_member("vacancies_give_back", types.int32, types.int64)


@intrinsic
def _vacancies_set(typing, vacancies, first, count):
    def code(target, builder, signature, arguments):
        member, *ids = arguments
        return _call(builder, "vacancies_set", _INT32, builder.bitcast(member, _BYTES), *ids)

    return types.int32(vacancies, types.int64, types.int64), code


@overload_method(_VACANCIES, "set")
def set_vacancies(vacancies, first, count):
    def code(vacancies, first, count):
        if _vacancies_set(vacancies, first, count) == 0:
            raise ValueError(members.NO_IDS)

    return code


@overload_method(_VACANCIES, "take")
def take(vacancies):
    return lambda vacancies: _vacancies_take(vacancies)


@overload_method(_VACANCIES, "give_back")
def give_back(vacancies, vacant):
    def code(vacancies, vacant):
        if _vacancies_give_back(vacancies, vacant) == 0:
            raise MemoryError

    return code
