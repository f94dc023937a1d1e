// How much of a key is taken. A lock is held by one alone or by any number who share it, a
// semaphore up to its limit. Pure; `lock` is a key of either kind, as the server lists it.

// Of a semaphore. The server says how many they are where somebody has several.
export function permitsInUse({ permits, holders }) {
  return permits ?? holders;
}

export function isShared({ holds }) {
  return holds[0]?.mode === 'shared';
}

// The first in the queue, if the key has room for it: then it waits for other keys, and nobody
// overtakes it. Else null. `lock` has its whole queue, not some of it that was searched for.
export function firstWithRoom(lock) {
  const [first] = lock.queue;
  return first !== undefined && hasRoom(lock, first) ? first : null;
}

function hasRoom(lock, { mode, permits = 1 }) {
  if (lock.kind === 'semaphore') return permitsInUse(lock) + permits <= lock.limit;
  return lock.holders === 0 || (mode === 'shared' && isShared(lock));
}

// The key as it would be without `hold`, one of its holds.
export function without(lock, hold) {
  return {
    ...lock,
    holders: lock.holders - 1,
    permits: permitsInUse(lock) - (hold.permits ?? 1),
    holds: lock.holds.filter((one) => one !== hold),
  };
}
