// The link that a message asks to follow, with a button to copy it.

/** @import { Link } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { isLink } from './linkify.js';

/** Longer texts are truncated, in characters. */
const MAX_LENGTH = 80;

/**
 * Returns null if the link may not be opened.
 * @param {Link} link
 */
export function mainLink({ href, text, 'image-alt': alt }) {
  if (!isLink(href) || !/^https?:/iu.test(href)) return null;
  const { host, pathname } = new URL(href);
  const words = visible(text).trim() || visible(alt ?? '').trim();
  // The text of a link in a plain text is its URL, which is too long here.
  const shown = words && !isLink(words) ? words : `${host}${pathname === '/' ? '' : pathname}`;
  const label = shown.length > MAX_LENGTH ? `${shown.slice(0, MAX_LENGTH)}…` : shown;
  return h('p', { class: 'message-helper message-main-link' },
    h('a', { class: 'main-link', href, target: '_blank', rel: 'noopener noreferrer', title: `Open ${visible(href)}` }, icon('open'),
      h('span', { class: 'truncate' }, h('bdi', { class: 'main-link-text' }, label), shown === words && h('bdi', { class: 'soft' }, ` ${host}`))),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the link ${label}`, title: 'Copy the link', onclick: () => copy(href, 'Link copied') }, icon('copy')));
}
