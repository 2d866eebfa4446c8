// Copying. The browser's own way works on secure pages only, and a server on the next desk is none.

import { h } from './dom.js';
import { toast } from './talk.js';

/**
 * Copies a text and says so.
 * @param {string} text
 * @param {string} [what]
 */
export async function copy(text, what = 'Copied') {
  const copied = await modern(text) || ancient(text);
  toast(copied ? what : 'This browser does not allow copying; select the text instead.', { bad: !copied, millis: 2_000 });
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
