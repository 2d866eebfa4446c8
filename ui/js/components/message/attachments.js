// <message-attachments>: the attachments of a message as cards, with a small picture where there is one to show.

/** @import { Attachment, Message } from '../../types.js' */

import * as paths from '../../lib/paths.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
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
    const { mailbox, id } = this.#message;
    const name = visible(attachment.filename);
    const [look, save] = [paths.attachment('vattach', mailbox, id, attachment), paths.attachment('dattach', mailbox, id, attachment)];
    const away = { target: '_blank', rel: 'noopener noreferrer' };
    return h('li', { class: 'card sheet' },
      h('a', { class: 'card-picture', href: look, ...away, tabindex: -1, 'aria-hidden': 'true' }, picture(attachment, look)),
      h('div', { class: 'card-words' },
        h('bdi', { class: 'card-name', title: name }, name),
        h('p', { class: 'soft' }, h('bdi', {}, visible(attachment['content-type'])), ' · ', h('span', { class: 'number' }, size(attachment.size))),
        h('button', { class: 'card-md5 mono', type: 'button', title: 'Copy the MD5 sum', 'aria-label': `Copy the MD5 sum ${attachment.md5}`, onclick: () => copy(attachment.md5, 'MD5 sum copied') }, h('span', { class: 'cut' }, attachment.md5), icon('copy'))),
      h('div', { class: 'card-actions' },
        h('a', { class: 'button small', href: look, ...away, 'aria-label': `Open ${name}` }, icon('open'), 'Open'),
        h('a', { class: 'button small', href: save, download: true, 'aria-label': `Download ${name}` }, icon('download'), 'Download')));
  }
}

/**
 * @param {Attachment} attachment
 * @param {string} look
 */
function picture(attachment, look) {
  const kind = attachment['content-type'].split(';')[0].trim().toLowerCase();
  if (!PICTURES.includes(kind)) return icon('file');
  const image = h('img', { src: look, alt: '', loading: 'lazy', decoding: 'async' });
  image.addEventListener('error', () => image.replaceWith(icon('file')));
  return image;
}

customElements.define('message-attachments', MessageAttachments);
