// <message-attachments>: the attachments of a message as cards, with a thumbnail if it is an image.

/** @import { Attachment, Message } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { SAVE_ONLY, attachmentLinks, mediaType } from './attachment-links.js';
import { scroller } from './controls.js';
import { withShowMore } from './show-more.js';

const FIRST_CARDS = 100;

/** Image types that all browsers support, and that run no script in an `img` element. */
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp', 'image/svg+xml'];

export class MessageAttachments extends HTMLElement {
  #message;

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (this.firstChild) return;
    const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', { class: 'panel-end' }, button);
    const body = scroller('Attachments', 'message-attachments');
    fill(body, h('ul', { class: 'cards' }, withShowMore(this.#message.attachments, (attachment) => this.#card(attachment), { first: FIRST_CARDS, wrap })));
    fill(this, body);
  }

  /** @param {Attachment} attachment */
  #card(attachment) {
    const { view, download, mayOpen } = attachmentLinks(this.#message, attachment);
    const name = visible(attachment.filename);
    const opening = { href: view, target: '_blank', rel: 'noopener noreferrer' };
    const saving = { href: download, download: true, title: mayOpen ? null : SAVE_ONLY };
    return h('li', { class: 'card sheet' },
      h('a', { class: 'card-picture', ...(mayOpen ? opening : saving), tabindex: -1, 'aria-hidden': 'true' }, thumbnail(attachment, view)),
      h('div', { class: 'card-words' },
        h('bdi', { class: 'card-name', title: name }, name),
        h('p', { class: 'soft' }, h('bdi', {}, visible(attachment['content-type'])), ' · ', h('span', { class: 'number' }, size(attachment.size))),
        checksum(attachment.md5)),
      h('div', { class: 'card-actions' },
        mayOpen && h('a', { class: 'button small', ...opening, 'aria-label': `Open ${name}` }, icon('open'), 'Open'),
        h('a', { class: 'button small', ...saving, 'aria-label': `Download ${name}` }, icon('download'), 'Download')));
  }
}

/** @param {string} md5 */
function checksum(md5) {
  return h('button', { class: 'card-md5 mono', type: 'button', title: 'Copy the MD5 checksum', 'aria-label': `Copy the MD5 checksum ${md5}`, onclick: () => copy(md5, 'MD5 checksum copied') },
    h('span', { class: 'truncate' }, md5), icon('copy'));
}

/**
 * @param {Attachment} attachment
 * @param {string} view
 */
function thumbnail(attachment, view) {
  if (!IMAGE_TYPES.includes(mediaType(attachment))) return icon('file');
  const image = h('img', { src: view, alt: '', loading: 'lazy', decoding: 'async' });
  image.addEventListener('error', () => image.replaceWith(icon('file')));
  return image;
}

customElements.define('message-attachments', MessageAttachments);
