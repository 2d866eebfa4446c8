// <message-attachments>: the attachments of a message as a strip with thumbnails. Images, PDF and texts open in a viewer; other
// files are downloaded. Inline images are not listed.

/** @import { Attachment, Message } from '../../types.js' */

import { fill, h } from '../../lib/dom.js';
import { count, size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { attachmentKind } from './attachment-kind.js';
import { attachmentLinks, isListed, mediaType } from './attachment-links.js';
import { withShowMore } from './show-more.js';
import { openViewer } from './viewer.js';

const FIRST_CARDS = 24;

export class MessageAttachments extends HTMLElement {
  /** The message that is drawn. @type {Message | null} */
  #message = null;
  #title = h('h2', { class: 'attachments-title', id: 'attachments-title' });
  #list = h('ul', { class: 'cards', 'aria-labelledby': 'attachments-title' });

  connectedCallback() {
    if (!this.firstChild) fill(this, h('section', { class: 'attachments', 'aria-labelledby': 'attachments-title' }, this.#title, this.#list));
  }

  /** @param {Message} message */
  show(message) {
    this.#message = message;
    const files = message.attachments.filter(isListed);
    this.classList.toggle('none', files.length === 0);
    fill(this.#title, 'Attachments ', h('span', { class: 'badge' }, count(files.length)));
    const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', { class: 'panel-end' }, button);
    fill(this.#list, withShowMore(files, (file) => this.#card(file), { first: FIRST_CARDS, step: 200, wrap }));
  }

  /** Scrolls to the attachments. */
  reveal() {
    this.scrollIntoView({ block: 'nearest' });
    const first = this.#list.querySelector('.card-main');
    if (first instanceof HTMLElement) first.focus({ preventScroll: true });
  }

  /** @param {Attachment} attachment */
  #card(attachment) {
    const message = /** @type {Message} */ (this.#message);
    const { view, download } = attachmentLinks(message, attachment);
    const kind = attachmentKind(attachment);
    const name = visible(attachment.filename);
    const content = [
      h('span', { class: 'card-picture' }, kind === 'image' ? thumbnail(view) : icon(mediaType(attachment) === 'text/calendar' ? 'calendar' : 'file')),
      h('span', { class: 'card-words' },
        h('bdi', { class: 'card-name', title: name }, name),
        h('span', { class: 'card-type soft' }, h('bdi', {}, visible(attachment['content-type'])), ' · ', h('span', { class: 'number' }, size(attachment.size)))),
    ];
    const open = () => openViewer(message, message.attachments.filter((one) => isListed(one) && attachmentKind(one) !== null), attachment);
    return h('li', { class: 'card' },
      kind ? h('button', { class: 'card-main', type: 'button', title: `Show ${name}`, onclick: open }, ...content) : h('a', { class: 'card-main', href: download, download: true, title: `Download ${name}` }, ...content),
      h('a', { class: 'card-download button plain', href: download, download: true, 'aria-label': `Download ${name}`, title: 'Download' }, icon('download')));
  }
}

/** @param {string} view */
function thumbnail(view) {
  const image = h('img', { src: view, alt: '', loading: 'lazy', decoding: 'async' });
  image.addEventListener('error', () => image.replaceWith(icon('file')));
  return image;
}

customElements.define('message-attachments', MessageAttachments);
