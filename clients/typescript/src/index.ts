/// <reference lib="esnext.disposable" preserve="true" />
/** Locks and semaphores of a lockd or dflockd server. `Client` is where to begin. */

export { type AcquireOptions, Client, type EnqueueOptions } from "./client.js";
export { shardOf } from "./cluster.js";
export * from "./errors.js";
export { HeldLock } from "./held-lock.js";
export type { ClientOptions, TlsOptions } from "./options.js";
export { Place, type WaitOptions } from "./place.js";
export { Signal, type Stats } from "./replies.js";
export { Subscription } from "./subscription.js";
