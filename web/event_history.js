// What happened before the page was opened, as far as the server remembers it.

const eventsMost = 500;

// The events of `key`, or of what `search` looks for, as the stream would have told them; empty
// where the server keeps no history.
export async function fetchHistory(api, key, search) {
  if (key !== null) return ask(api, { key });
  if (search.text === '') return ask(api, {});
  switch (search.by) {
    case 'client_id':
      return ask(api, { client_id: search.text });
    case 'holder': {
      const held = await ask(api, { holder: search.text });
      const named = await ask(api, { client: search.text });
      return [...held, ...named.filter(({ holder }) => holder !== search.text)];
    }
    default:
      return ask(api, {}); // what a key contains, the page finds in what comes
  }
}

async function ask(api, about) {
  try {
    const { events } = await api.get('v1/history', { ...about, limit: eventsMost });
    return events.map(({ event, ...members }) => ({ type: event, ...members }));
  } catch {
    return [];
  }
}
