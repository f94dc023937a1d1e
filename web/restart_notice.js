// Says that a restart has lost what was held, because the server keeps no journal, until the reader
// has taken note.
import { byId, setHidden, setText } from './dom.js';
import { formatTime } from './format.js';

export class RestartNotice {
  #uptimeMs = 0; // the longest that this process has said

  constructor() {
    byId('restart-dismiss').addEventListener('click', () => setHidden(byId('restart'), true));
  }

  show(overview) {
    const isAnother = overview.uptime_ms < this.#uptimeMs;
    this.#uptimeMs = overview.uptime_ms;
    if (!isAnother || overview.journal !== 'none') return;
    const at = formatTime(overview.now_unix_ms - overview.uptime_ms).slice(0, 8);
    setText(
      byId('restart-text'),
      `The server was started again at ${at} and has no journal: whatever was held or waited for ` +
        'before is forgotten, and fences begin anew. Holders from before do not know it. ' +
        'With --wal DIRECTORY it would have been kept.',
    );
    setHidden(byId('restart'), false);
  }
}
