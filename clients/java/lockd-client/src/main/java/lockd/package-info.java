/**
 * The client of the lock server lockd: locks with leases and fencing tokens over its HTTP API.
 *
 * <p>{@link lockd.LockdClient} takes locks; a {@link lockd.HeldLock} renews itself and reports when
 * it is lost; {@link lockd.LeaderElection} runs a task in one process at a time.
 */
package lockd;
