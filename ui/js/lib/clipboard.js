// Copying. The browser's own way works on secure pages only, and a server on the next desk is none.

import { fill, h } from './dom.js';
import { icon } from './icons.js';
import { say, toast } from './talk.js';

/** How long a button says that it has copied. */
const SAID = 2_000;

/** The button that was pressed last, and which says so itself when it has copied. @type {HTMLElement | null} */
let pressed = null;
document.addEventListener('click', ({ target }) => (pressed = target instanceof Element ? target.closest('button') : null), { capture: true });

/** Those that are saying so. @type {WeakSet<HTMLElement>} */
const saying = new WeakSet();

/**
 * Copies a text when a button is pressed, and says so.
 * @param {string} text
 * @param {string} [what] For those who cannot see the button.
 */
export async function copy(text, what = 'Copied') {
  const button = pressed;
  if (!(await modern(text) || ancient(text))) {
    toast('This browser does not allow copying; select the text instead.', { bad: true });
    return;
  }
  say(what);
  if (button && !saying.has(button)) relabel(button);
}

/** @param {HTMLElement} button */
function relabel(button) {
  const before = [...button.childNodes];
  saying.add(button);
  // What stands beside it shall not move.
  button.style.minWidth = `${button.offsetWidth}px`;
  fill(button, icon('check'), button.textContent?.trim() ? 'Copied' : null);
  setTimeout(() => {
    saying.delete(button);
    button.style.minWidth = '';
    fill(button, ...before);
  }, SAID);
}

/** @param {string} text */
async function modern(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} text */
function ancient(text) {
  const area = h('textarea', { class: 'hidden', readonly: true });
  area.value = text;
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}
