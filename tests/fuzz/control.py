"""control.py PROGRAM ARGS...     Positive control: the program has a planted fault, and must die of it."""
import subprocess
import sys


def main():
    process = subprocess.run(sys.argv[1:], capture_output=True, text=True, errors="replace")
    said = [line for line in process.stderr.splitlines() if line.strip() and not line.startswith("  ")]
    if process.returncode == 0:
        sys.exit("control: the planted fault was not found")
    if process.returncode != -6 and "ERROR" not in process.stderr and "SIGSEGV" not in process.stderr and process.returncode != -11:
        sys.exit(f"control: ended with {process.returncode}, which is no finding: {said[-1:]}")
    print(f"control: found, {said[-1] if said else process.returncode}")


if __name__ == "__main__":
    main()
