# Spawned workers, to which the program sends functions and arguments.
from mpi4py.futures import MPIPoolExecutor


def squares(count):
    return sum(number * number for number in range(count))


if __name__ == "__main__":
    with MPIPoolExecutor(max_workers=3) as pool:
        print("sum", sum(pool.map(squares, range(60))))
