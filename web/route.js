// What the page shows, as its address says: #key=... for one key, #prefix=... for a search. Pure.

export function readRoute(hash) {
  const route = { key: null, prefix: '' };
  for (const part of hash.replace(/^#/, '').split('&')) {
    const [name, ...value] = part.split('=');
    if (Object.hasOwn(route, name)) route[name] = decode(value.join('='));
  }
  if (route.key === '') route.key = null; // no key is called that
  return route;
}

export function keyAddress(key) {
  return `#key=${encodeURIComponent(key)}`;
}

export function searchAddress(prefix) {
  return prefix === '' ? '#' : `#prefix=${encodeURIComponent(prefix)}`;
}

// A link that somebody wrote by hand may hold a bare %; then it means what it says.
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
