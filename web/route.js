// What the page shows, as its address says: #key=... for one key, #clients for the connections,
// and #contains=..., #prefix=..., #holder=... or #client_id=... for a search. Pure.

export const noSearch = { by: 'contains', text: '' };
const searches = ['contains', 'prefix', 'holder', 'client_id'];

// {key, search: {by, text}, view}, `view` being 'key', 'clients' or 'keys'.
export function readRoute(hash) {
  const route = { key: null, search: noSearch, view: 'keys' };
  for (const part of hash.replace(/^#/, '').split('&')) {
    const [name, ...rest] = part.split('=');
    const value = decode(rest.join('='));
    if (name === 'key' && value !== '') Object.assign(route, { key: value, view: 'key' });
    else if (name === 'clients' && route.key === null) route.view = 'clients';
    else if (searches.includes(name) && value !== '') route.search = { by: name, text: value };
  }
  return route;
}

export function keyAddress(key) {
  return `#key=${encodeURIComponent(key)}`;
}

export function searchAddress({ by, text }) {
  return text === '' ? '#' : `#${by}=${encodeURIComponent(text)}`;
}

// What else the one has who stands in a hold, in a queue or in an event. After a restart
// connections have other numbers: then the name that the client gave itself leads there.
export function whoAddress({ holder, client, client_id: id }) {
  if (id !== undefined) return searchAddress({ by: 'client_id', text: String(id) });
  const isConnection = /^tcp:\d+$/.test(holder);
  return searchAddress({ by: 'holder', text: (isConnection && client) || holder });
}

// The search as parameters of the listing.
export function searchParameters({ by, text }) {
  return { [by]: text };
}

// Whether the event is about what is searched for.
export function isAbout({ by, text }, event) {
  switch (text && by) {
    case '':
      return true;
    case 'prefix':
      return event.key?.startsWith(text) ?? false;
    case 'contains':
      return event.key?.includes(text) ?? false;
    case 'client_id':
      return String(event.client_id) === text || event.holder === `tcp:${text}`;
    default:
      return event.holder === text || event.client === text;
  }
}

// A link that somebody wrote by hand may hold a bare %; then it means what it says.
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
