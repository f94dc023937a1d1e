// Puts the page together: what the address says is what is shown; the heartbeat says whether the
// server is there; the stream of events says when to look again.
import { Api } from './api.js';
import { showCluster } from './cluster.js';
import { Connection } from './connection.js';
import { Detail } from './detail.js';
import { byId, setHidden } from './dom.js';
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
import { readRoute, searchAddress } from './route.js';
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
const table = new LocksTable(api, clock);
const detail = new Detail(api, clock, log);
const hotKeys = new HotKeys(api, clock);
const eventList = new EventList(log);
const search = byId('search');
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
  state: (state) => eventList.showState(state),
  events: (events) => {
    log.add(events);
    eventList.add(events);
    hotKeys.add(events);
    if (route.key === null) table.poke();
    else detail.poke();
  },
});

function showOverview(answer) {
  const cameBack = !connection.isLive;
  connection.live();
  past.add(answer, clock.localNow());
  overview.show(answer, past);
  drawLatency();
  showSignals(answer.signals);
  showCluster(answer.cluster);
  if (cameBack) {
    showFirstSteps(api.hasToken);
    watch();
  }
}

function drawLatency() {
  const name = document.querySelector('input[name=latency]:checked').value;
  if (past.last()) chart.draw(past, name);
}

// Follows what the route says, from now on.
function watch() {
  const isKey = route.key !== null;
  setHidden(byId('detail'), !isKey);
  setHidden(byId('locks-panel'), isKey);
  byId('detail-back').href = searchAddress(route.prefix);
  eventList.filter(
    isKey ? (event) => event.key === route.key : (event) => event.key?.startsWith(route.prefix),
  );
  stopWatching();
  if (!connection.isLive || document.hidden) return;
  if (isKey) detail.start(route.key);
  else table.start(route.prefix);
  hotKeys.start(route.prefix);
  stream.open(isKey ? route.key : route.prefix);
}

function stopWatching() {
  table.stop();
  detail.stop();
  hotKeys.stop();
  stream.close();
}

function followAddress() {
  const next = readRoute(location.hash);
  // A key is looked at from within a search, and the way back leads there.
  route = next.key === null ? next : { ...next, prefix: next.prefix || route.prefix };
  if (document.activeElement !== search) search.value = route.prefix;
  watch();
  if (route.key !== null) byId('detail-key').focus();
}
window.addEventListener('hashchange', followAddress);

// A browser opens six connections to a server at most: pages that nobody sees must not use them up.
document.addEventListener('visibilitychange', watch);

let searchTimer = null;
search.addEventListener('input', () => {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(() => {
    history.replaceState(null, '', searchAddress(search.value)); // no step back for each letter
    followAddress();
  }, searchPauseMs);
});
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
  } else if (event.key === 'Escape' && route.key !== null) {
    location.hash = searchAddress(route.prefix);
  }
});

const wantsNoMotion = matchMedia('(prefers-reduced-motion: reduce)');
let tickedAt = 0;

function tick(frameAt) {
  requestAnimationFrame(tick);
  if (!connection.isLive || (wantsNoMotion.matches && frameAt - tickedAt < stillMs)) return;
  tickedAt = frameAt;
  if (route.key === null) table.tick(clock.now());
  else detail.tick(clock.now());
}

startTheme();
search.value = route.prefix;
requestAnimationFrame(tick);
heartbeat.beat();
