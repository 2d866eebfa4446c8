// <message-attachments>: the attachments of a message as cards, with a small picture where there is one to show.

/** @import { Attachment, Message } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { SAVE_ONLY, kind, ways } from './attached.js';
import { scroller } from './controls.js';
import { inSteps } from './steps.js';

const CARDS = 100;

/** What every browser draws, and what runs no script as a picture. */
const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp', 'image/svg+xml'];

export class MessageAttachments extends HTMLElement {
  #message;

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (this.firstChild) return;
    const place = (/** @type {HTMLButtonElement} */ button) => h('li', { class: 'panel-end' }, button);
    const body = scroller('Attachments', 'message-attachments');
    fill(body, h('ul', { class: 'cards' }, inSteps(this.#message.attachments, (attachment) => this.#card(attachment), { first: CARDS, place })));
    fill(this, body);
  }

  /** @param {Attachment} attachment */
  #card(attachment) {
    const { look, save, mayOpen } = ways(this.#message, attachment);
    const name = visible(attachment.filename);
    const opening = { href: look, target: '_blank', rel: 'noopener noreferrer' };
    const saving = { href: save, download: true, title: mayOpen ? null : SAVE_ONLY };
    return h('li', { class: 'card sheet' },
      h('a', { class: 'card-picture', ...(mayOpen ? opening : saving), tabindex: -1, 'aria-hidden': 'true' }, picture(attachment, look)),
      h('div', { class: 'card-words' },
        h('bdi', { class: 'card-name', title: name }, name),
        h('p', { class: 'soft' }, h('bdi', {}, visible(attachment['content-type'])), ' · ', h('span', { class: 'number' }, size(attachment.size))),
        sum(attachment.md5)),
      h('div', { class: 'card-actions' },
        mayOpen && h('a', { class: 'button small', ...opening, 'aria-label': `Open ${name}` }, icon('open'), 'Open'),
        h('a', { class: 'button small', ...saving, 'aria-label': `Download ${name}` }, icon('download'), 'Download')));
  }
}

/** @param {string} md5 */
function sum(md5) {
  return h('button', { class: 'card-md5 mono', type: 'button', title: 'Copy the MD5 sum', 'aria-label': `Copy the MD5 sum ${md5}`, onclick: () => copy(md5, 'MD5 sum copied') },
    h('span', { class: 'cut' }, md5), icon('copy'));
}

/**
 * @param {Attachment} attachment
 * @param {string} look
 */
function picture(attachment, look) {
  if (!PICTURES.includes(kind(attachment))) return icon('file');
  const image = h('img', { src: look, alt: '', loading: 'lazy', decoding: 'async' });
  image.addEventListener('error', () => image.replaceWith(icon('file')));
  return image;
}

customElements.define('message-attachments', MessageAttachments);
