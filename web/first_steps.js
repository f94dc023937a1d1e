// What to type to see a first lock, filled in with where this server is.
import { byId, element, setHidden } from './dom.js';

// `linePort` is not there where the line protocol is not served.
export function showFirstSteps(hasToken, linePort, journal) {
  const auth = hasToken ? " -H 'Authorization: Bearer AUTH_TOKEN'" : '';
  const login = hasToken ? 'auth\\n_\\nAUTH_TOKEN\\n' : '';
  const acquire = (what) =>
    `curl${auth} -d '{${what},"holder":"cart-7","ttl_ms":30000}' ${location.origin}/v1/acquire`;
  fillStep('step-curl', acquire('"key":"stone-42"'));
  fillStep('step-several', acquire('"keys":["seat-12","seat-13"]'));
  fillStep(
    'step-nc',
    `(printf '${login}l\\nstone-42\\n60 30\\n'; sleep 20) | nc ${location.hostname} ${linePort}`,
  );
  setHidden(byId('steps-by-line'), linePort === undefined);
  setHidden(byId('step-journal'), journal !== 'none');
}

function fillStep(id, command) {
  const code = element('code', { tabindex: '0' }, command);
  // Browsers give a page the clipboard only where nobody can listen in; elsewhere a click selects.
  const copy = navigator.clipboard
    ? element(
        'button',
        { type: 'button', class: 'copy', click: () => copyText(copy, command) },
        'Copy',
      )
    : '';
  byId(id).replaceChildren(code, copy);
}

async function copyText(button, text) {
  await navigator.clipboard.writeText(text);
  button.textContent = 'Copied';
  setTimeout(() => {
    button.textContent = 'Copy';
  }, 1500);
}
