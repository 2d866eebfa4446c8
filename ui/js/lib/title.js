// The title of the window, preceded by the number of unread messages.

import { count } from './format.js';
import { visible } from './visible.js';

/**
 * @param {string} page The title of the page; empty for the name of the program alone.
 * @param {number} [unread]
 */
export function title(page, unread = 0) {
  const name = page ? `${visible(page)} · Restante` : 'Restante';
  document.title = unread > 0 ? `(${count(unread)}) ${name}` : name;
}
