// The title and the icon of the window, with the number of unread messages.

import { find } from './dom.js';
import { count } from './format.js';
import { projects } from './projects.js';
import { visible } from './visible.js';

const MAX_IN_ICON = 99;

const link = find(document, 'link[rel=icon]', HTMLLinkElement);
/** The icon without a number. */
const plainIcon = link.href;
/** @type {Parameters<typeof title>} */
let shown = [''];
projects.addEventListener('change', () => title(...shown));

/**
 * @param {string} page The title of the page; may be empty. The project and the name of the program follow.
 * @param {number} [unread]
 */
export function title(page, unread = 0) {
  shown = [page, unread];
  const name = [visible(page), projects.current, 'Restante'].filter(Boolean).join(' · ');
  document.title = unread > 0 ? `(${count(unread)}) ${name}` : name;
  const href = unread > 0 ? iconWith(unread > MAX_IN_ICON ? `${MAX_IN_ICON}+` : String(unread)) : plainIcon;
  if (link.href !== href) link.href = href;
}

/** @param {string} text One to three characters. */
function iconWith(text) {
  const width = 8 + 7 * text.length;
  return `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><g fill="none" stroke="#4a86e8" stroke-width="3" stroke-linejoin="round"><path d="M2 4h28v20H2z"/><path d="m2 5 14 10L30 5"/></g><rect x="${32 - width}" y="14" width="${width}" height="18" rx="6" fill="#d0342c"/><text x="${32 - width / 2}" y="28.500" font-family="sans-serif" font-size="15" font-weight="700" fill="#fff" text-anchor="middle">${text}</text></svg>`)}`;
}
