// Copying to the clipboard. The Clipboard API works on secure pages only; other pages use `execCommand`.

import { fill, h } from './dom.js';
import { icon } from './icons.js';
import { announce, toast } from './feedback.js';

/** How long a button shows that its text was copied. */
const COPIED_MS = 2_000;

/** The button that was pressed last. It shows whether copying succeeded. @type {HTMLElement | null} */
let pressed = null;
document.addEventListener('click', ({ target }) => (pressed = target instanceof Element ? target.closest('button') : null), { capture: true });

/** The buttons that show the result now. @type {WeakSet<HTMLElement>} */
const showing = new WeakSet();

/**
 * Copies a text and shows the result on the pressed button.
 * @param {string} text
 * @param {string} [announcement] The text for screen readers.
 */
export async function copy(text, announcement = 'Copied') {
  const button = pressed;
  if (!(await writeWithApi(text) || writeWithCommand(text))) {
    toast('The browser does not allow copying. Select the text and copy it yourself.', { bad: true });
    return;
  }
  announce(announcement);
  if (button && !showing.has(button)) relabel(button);
}

/** @param {HTMLElement} button */
function relabel(button) {
  const before = [...button.childNodes];
  showing.add(button);
  // The width stays, so that the neighbors do not move.
  button.style.minWidth = `${button.offsetWidth}px`;
  fill(button, icon('check'), button.textContent?.trim() ? 'Copied' : null);
  setTimeout(() => {
    showing.delete(button);
    button.style.minWidth = '';
    fill(button, ...before);
  }, COPIED_MS);
}

/** @param {string} text */
async function writeWithApi(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} text */
function writeWithCommand(text) {
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
