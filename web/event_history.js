// What happened before the page was opened, as far as the server remembers it.

const eventsMost = 500;

// The events of `key`, or of what `search` looks for, newest first, as the stream would have told
// them; empty where the server keeps no history.
export async function fetchHistory(api, key, search) {
  try {
    const { events } = await api.get('v1/history', { ...about(key, search), limit: eventsMost });
    return events.map(({ event, ...members }) => ({ type: event, ...members }));
  } catch {
    return [];
  }
}

// The server looks for one key or one connection; anything else the page finds in what comes.
function about(key, { by, text }) {
  if (key !== null) return { key };
  return by === 'client_id' ? { client_id: text } : {};
}
