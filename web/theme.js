// Light, dark, or as the system has it. The choice stays with this browser.
import { byId } from './dom.js';

const themes = ['system', 'light', 'dark'];
const storageName = 'lockd-theme';

export function startTheme() {
  const button = byId('theme');
  show(button, localStorage.getItem(storageName) ?? 'system');
  button.addEventListener('click', () => {
    const current = themes.indexOf(document.documentElement.dataset.theme);
    const next = themes[(current + 1) % themes.length];
    localStorage.setItem(storageName, next);
    show(button, next);
  });
}

function show(button, theme) {
  document.documentElement.dataset.theme = themes.includes(theme) ? theme : 'system';
  const said = `Theme: ${document.documentElement.dataset.theme}`;
  button.setAttribute('aria-label', said);
  button.title = said;
}
