// Loads a module of web/ that imports nothing. Node takes a .js file outside a package for
// CommonJS, and web/ holds only what the server serves; so the text is given as a module.
import { readFile } from 'node:fs/promises';

export async function pure(name) {
  const text = await readFile(new URL(`../../../web/${name}`, import.meta.url), 'utf8');
  return import(`data:text/javascript;base64,${Buffer.from(text).toString('base64')}`);
}
