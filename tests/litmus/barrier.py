"""The barrier of a claim (row 19 of docs/design.md) as litmus tests, judged by herd7.

    barrier.py --work DIR

The models of processors do not know membarrier.  What it promises is that each thread passes a full barrier at some point,
after the collector has called it and before the call returns: so the thread has one here in each place where the point may
fall, and the two tell each other so.  With it the wrong outcome is never seen; without, it is.
Exit status: 0 as expected, 1 not so, 77 when there is no herd7.
"""
import argparse
import pathlib
import subprocess
import sys

import litmus

POINT = ["LDR W10,[X10]", "DMB ISH", "STR W9,[X11]", "DMB ISH"]      # has it been called?  Then say that it is done
CALL = ["DMB ISH", "STR W9,[X10]", "LDR W12,[X11]", "DMB ISH"]
CALLED = r"0:X12=1 /\ 1:X10=1 /\ "
REGISTERS = "0:X9=1; 1:X9=1; 0:X10=ipi; 0:X11=ack; 1:X10=ipi; 1:X11=ack; 0:X1=v; 1:X1=v; 0:X3=w; 1:X3=w; "
# name -> (the collector's store to w, before its load of v; the thread's two accesses; what words hold; what is wrong)
TESTS = {
    # v: in_use, w: claim.  Wrong: neither sees the other.
    "in_use": ("STR W9,[X3]", ["STR W9,[X1]", "LDR W2,[X3]"], "", r"0:X4=0 /\ 1:X2=0"),
    # v: the top, which falls from 2 to 1; w: the fence's slot, which loses its block.  Wrong: the thread pops the block there,
    # and the collector sees a top above it.
    "fence": ("STR WZR,[X3]", ["STR W9,[X1]", "LDR W2,[X3]"], "v=2; w=1; ", r"0:X4=2 /\ 1:X2=1"),
}


def text(name, columns, words, wrong):
    rows = max(map(len, columns))
    lines = zip(*(column + [""] * (rows - len(column)) for column in columns))
    code = "\n".join(f" {first} | {second} ;" for first, second in lines)
    return f"AArch64 {name}\n{{ {REGISTERS}{words}}}\n P0 | P1 ;\n{code}\nexists ({wrong})\n"


def tests():
    """(name, its text, the verdict)"""
    for name, (store, accesses, words, wrong) in TESTS.items():
        for at in range(3):
            thread = accesses[:at] + POINT + accesses[at:]
            yield f"{name}_{at}", text(name, [[store, *CALL, "LDR W4,[X1]"], thread], words, CALLED + wrong), "Never"
        yield f"{name}_none", text(name, [[store, "DMB ISH", "LDR W4,[X1]"], accesses], words, wrong), "Sometimes"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--work", type=pathlib.Path, required=True)
    work = parser.parse_args().work
    herd = litmus.herd()
    if herd is None:
        print("skipped: no herd7")
        return 77
    work.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name, content, expected in tests():
        file = work / f"{name}.litmus"
        file.write_text(content)
        done = subprocess.run([*herd, file], capture_output=True, text=True, check=False)
        wrong += f" {expected} " not in done.stdout
        print(f"{name}: {' '.join(done.stdout.split('Observation')[-1].split()[1:2]) or done.stderr}, expected {expected}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
