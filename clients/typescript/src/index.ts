/// <reference lib="esnext.disposable" preserve="true" />
/** Locks and semaphores of a lockd or dflockd server. `Client` is where to begin. */

export {
  type AcquireAllOptions,
  type AcquireOptions,
  Client,
  type EnqueueOptions,
  type HoldOptions,
  type WaitBound,
} from "./client.js";
export type { ClientOptions, TlsOptions } from "./client-options.js";
export * from "./errors.js";
export { HeldLock } from "./held-lock.js";
export { Place, type WaitOptions } from "./place.js";
export { shardOf } from "./shard.js";
export { Subscription } from "./subscription.js";
export { type SetItem, Signal, type Stats } from "./values.js";
