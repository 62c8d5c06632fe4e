"""One-sided communication with the next rank, by each way to synchronise. Prints what each rank
has counted itself: bytes sent, and fetched."""
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size
memory = bytearray(8 * 1000)
window = MPI.Win.Create(memory, 8, comm=world)
sent = fetched = 0
# In use until the next synchronisation.
buffers = []


def numbers(count):
    buffers.append(bytearray(8 * count))
    return [buffers[-1], MPI.LONG]


window.Fence()
window.Put(numbers(100), right, 10)
sent += 800
window.Fence()
window.Get(numbers(30), right)
fetched += 240
window.Fence(MPI.MODE_NOSUCCEED)

window.Lock(right)
window.Accumulate(numbers(200), right, op=MPI.SUM)
sent += 1600
window.Unlock(right)

window.Lock_all()
window.Rput(numbers(7), right, 500).Wait()
sent += 56
window.Rget(numbers(5), right, 500).Wait()
fetched += 40
window.Get_accumulate(numbers(3), numbers(3), right, 600, op=MPI.SUM)
sent, fetched = sent + 24, fetched + 24
window.Flush(right)
window.Fetch_and_op(numbers(1), numbers(1), right, 700, MPI.SUM)
sent, fetched = sent + 8, fetched + 8
window.Compare_and_swap(numbers(1), numbers(1), numbers(1), right, 800)
sent, fetched = sent + 16, fetched + 8
window.Unlock_all()

window.Post(world.group.Incl([left]))
window.Start(world.group.Incl([right]))
window.Put(numbers(11), right, 20)
sent += 88
window.Complete()
window.Wait()
window.Free()
if rank == 0:
    print(sent, fetched)
