// Says that a restart has lost what was held, because the server keeps no journal, until the reader
// has taken note.
import { byId, setHidden, setText } from './dom.js';
import { formatTime } from './format.js';

export class RestartNotice {
  #startedAt; // of the process that was there last

  constructor() {
    byId('restart-dismiss').addEventListener('click', () => setHidden(byId('restart'), true));
  }

  show(overview) {
    const startedAt = overview.started_unix_ms;
    const isAnother = this.#startedAt !== undefined && startedAt !== this.#startedAt;
    this.#startedAt = startedAt;
    if (!isAnother || overview.journal !== 'none') return;
    const at = formatTime(startedAt).slice(0, 8);
    setText(
      byId('restart-text'),
      `The server was started again at ${at} and has no journal: whatever was held or waited for ` +
        'before is forgotten. Holders from before may not know it; their fences are smaller than ' +
        'any new one. With --wal DIRECTORY it would have been kept.',
    );
    setHidden(byId('restart'), false);
  }
}
