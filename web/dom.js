// How the page makes elements. Text goes in as text: there is no other way in.
import { visibleName } from './format.js';

// element('a', {class: 'key', href: '#'}, 'text', child, ...)
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name, value);
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}

// Writes only what changed: an untouched node costs no layout and keeps a reader's selection.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

// A key or a holder: a name in any script, which may not disturb what stands beside it.
export function nameElement(tag, name, attributes = {}) {
  return element(tag, { dir: 'auto', title: name, ...attributes }, visibleName(name));
}

export function setName(node, name, title = name) {
  setText(node, visibleName(name));
  if (node.title !== title) node.title = title;
}

// Makes the children of `parent` exactly `wanted`, moving as few as an unchanged order allows.
export function arrange(parent, wanted) {
  let next = parent.firstChild;
  for (const child of wanted) {
    if (child === next) next = next.nextSibling;
    else parent.insertBefore(child, next);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}
