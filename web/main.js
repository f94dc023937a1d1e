// Puts the page together: what the address says is what is shown; the heartbeat says whether the
// server is there; the stream of events says when to look again.
import { AdminDialog } from './admin_dialog.js';
import { Api } from './api.js';
import { ClientsTable } from './clients_table.js';
import { showCluster } from './cluster.js';
import { Connection } from './connection.js';
import { Detail } from './detail.js';
import { byId, setHidden } from './dom.js';
import { fetchHistory } from './event_history.js';
import { EventList } from './event_list.js';
import { EventLog } from './event_log.js';
import { EventStream } from './event_stream.js';
import { showFirstSteps } from './first_steps.js';
import { Heartbeat } from './heartbeat.js';
import { History } from './history.js';
import { HotKeys } from './hot_keys.js';
import { LatencyChart } from './latency_chart.js';
import { LocksTable } from './locks_table.js';
import { Overview } from './overview.js';
import { RestartNotice } from './restart_notice.js';
import { Rights } from './rights.js';
import { isAbout, readRoute, searchAddress } from './route.js';
import { ServerClock } from './server_clock.js';
import { showSignals } from './signals.js';
import { startTheme } from './theme.js';
import { TokenForm } from './token_form.js';

const searchPauseMs = 200;
const stillMs = 1000; // how often what runs is drawn for those who want no motion

const api = new Api();
const clock = new ServerClock();
const log = new EventLog();
const past = new History();
const overview = new Overview();
const chart = new LatencyChart(byId('latency'), {
  p50: byId('latency-p50'),
  p99: byId('latency-p99'),
});
const restartNotice = new RestartNotice();
const rights = new Rights(api);
const admin = new AdminDialog(api, () => shownNow().poke());
const table = new LocksTable(api, clock);
const detail = new Detail(api, clock, log, admin);
const clients = new ClientsTable(api, admin);
const hotKeys = new HotKeys(api, clock);
const eventList = new EventList(log);
const search = byId('search');
const searchBy = byId('search-by');
let route = readRoute(location.hash);

const heartbeat = new Heartbeat(api, clock, {
  overview: showOverview,
  lost: (error, retryMs) => {
    connection.lost(error, retryMs);
    stopWatching();
  },
  denied: () => {
    connection.denied();
    stopWatching();
    tokenForm.show();
  },
});
const connection = new Connection(() => heartbeat.beat());
const tokenForm = new TokenForm(api, () => heartbeat.beat());
const stream = new EventStream(api, {
  // From then on everything is told; what was before is asked for, so that nothing is between.
  state: (state) => {
    eventList.showState(state);
    if (state === 'flowing') showHistory();
  },
  events: (events) => {
    for (const event of events) event.at_unix_ms ??= clock.now();
    log.add(events);
    eventList.add(events);
    hotKeys.add(events);
    shownNow().poke();
  },
});

async function showHistory() {
  const asked = route;
  const history = await fetchHistory(api, asked.key, asked.search);
  if (asked !== route || history.length === 0) return;
  log.addHistory(history);
  eventList.showHistory();
  shownNow().poke();
}

// What takes up the most of the page.
function shownNow() {
  return { key: detail, clients, keys: table }[route.view];
}

function showOverview(answer) {
  const cameBack = !connection.isLive;
  connection.live();
  past.add(answer, clock.localNow());
  overview.show(answer, past);
  drawLatency();
  showSignals(answer.signals);
  showCluster(answer);
  restartNotice.show(answer);
  if (cameBack) {
    showFirstSteps(api.hasToken, answer.line_port, answer.journal);
    rights.ask();
    watch();
  }
}

function drawLatency() {
  const name = document.querySelector('input[name=latency]:checked').value;
  if (past.last()) chart.draw(past, name);
}

// Follows what the route says, from now on.
function watch() {
  const { key, search: sought, view } = route;
  setHidden(byId('detail'), view !== 'key');
  setHidden(byId('locks-panel'), view !== 'keys');
  setHidden(byId('clients-panel'), view !== 'clients');
  for (const link of document.querySelectorAll('#views a')) {
    if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  byId('detail-back').href = searchAddress(sought);
  eventList.filter(
    view === 'key' ? (event) => event.key === key : (event) => isAbout(sought, event),
  );
  stopWatching();
  if (!connection.isLive || document.hidden) return;
  if (view === 'key') detail.start(key);
  else if (view === 'clients') clients.start();
  else table.start(sought);
  hotKeys.start(sought);
  stream.open(key ?? (sought.by === 'prefix' ? sought.text : ''));
}

function stopWatching() {
  table.stop();
  detail.stop();
  clients.stop();
  hotKeys.stop();
  stream.close();
}

function followAddress() {
  const next = readRoute(location.hash);
  // A key is looked at from within a search, and the way back leads there.
  const isFromSearch = next.key !== null && next.search.text === '';
  route = isFromSearch ? { ...next, search: route.search } : next;
  if (document.activeElement !== search) showSearch();
  watch();
  if (route.key !== null) byId('detail-key').focus();
}

function showSearch() {
  search.value = route.search.text;
  searchBy.value = route.search.by;
}
window.addEventListener('hashchange', followAddress);

// A browser opens six connections to a server at most: pages that nobody sees must not use them up.
document.addEventListener('visibilitychange', watch);

let searchTimer = null;
search.addEventListener('input', () => {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(seek, searchPauseMs);
});
searchBy.addEventListener('change', seek);

function seek() {
  const sought = { by: searchBy.value, text: search.value };
  history.replaceState(null, '', searchAddress(sought)); // no step back for each letter
  followAddress();
  searchBy.value = sought.by; // also of a search for nothing
}
byId('search-form').addEventListener('submit', (event) => event.preventDefault());
for (const choice of document.querySelectorAll('input[name=latency]')) {
  choice.addEventListener('change', drawLatency);
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches('input, select, textarea');
  if (event.key === '/' && !typing) {
    event.preventDefault();
    search.focus();
  } else if (event.key === 'Escape' && route.key !== null && !byId('admin').open) {
    location.hash = searchAddress(route.search);
  }
});

const wantsNoMotion = matchMedia('(prefers-reduced-motion: reduce)');
let tickedAt = 0;

function tick(frameAt) {
  requestAnimationFrame(tick);
  if (!connection.isLive || (wantsNoMotion.matches && frameAt - tickedAt < stillMs)) return;
  tickedAt = frameAt;
  if (route.view === 'keys') table.tick(clock.now());
  else if (route.view === 'key') detail.tick(clock.now());
}

startTheme();
showSearch();
requestAnimationFrame(tick);
heartbeat.beat();
