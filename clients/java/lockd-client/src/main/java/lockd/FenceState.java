package lockd;

/**
 * What the server knows of the fences of a lock.
 *
 * @param isHeld whether the lock is held
 * @param fence the fence of the grant in force, or else the largest that may have been granted
 */
public record FenceState(boolean isHeld, long fence) {}
