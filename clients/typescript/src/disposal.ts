/** How things end that nobody ends by name: at the end of a block, or when they are forgotten. */

/**
 * `Symbol.asyncDispose`, and where the runtime lacks it the symbol that compilers fall back to for
 * `await using`.
 */
export const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** Ends what is behind an object that nobody refers to any more. It must not refer to the object. */
const forgotten = new FinalizationRegistry<() => void>((end) => end());

export function endWhenForgotten(object: object, end: () => void): void {
  forgotten.register(object, end, object);
}

export function isRemembered(object: object): void {
  forgotten.unregister(object);
}
