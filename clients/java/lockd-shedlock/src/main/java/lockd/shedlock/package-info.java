/** ShedLock on the lock server lockd: scheduled tasks that run in one process at a time. */
package lockd.shedlock;
