// The attachments of a message as a strip with thumbnails. Images, PDF and texts open in a viewer; other files are downloaded. Inline
// images are not listed.

/** @import { Attachment, Message } from '../../types.js' */

import { h } from '../../lib/dom.js';
import { plural, size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { attachmentKind } from './attachment-kind.js';
import { attachmentLinks, isListed, mediaType } from './attachment-links.js';
import { withShowMore } from './show-more.js';
import { openViewer } from './viewer.js';

const FIRST_CARDS = 24;

/**
 * Returns the strip, or null if the message has no files.
 * @param {Message} message
 */
export function attachments(message) {
  const files = message.attachments.filter(isListed);
  if (files.length === 0) return null;
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', { class: 'panel-end' }, button);
  return h('ul', { class: 'cards', 'aria-label': plural(files.length, 'attachment') }, withShowMore(files, (file) => card(message, file), { first: FIRST_CARDS, step: 200, wrap }));
}

/**
 * @param {Message} message
 * @param {Attachment} attachment
 */
function card(message, attachment) {
  const { view, download } = attachmentLinks(message, attachment);
  const kind = attachmentKind(attachment);
  const name = visible(attachment.filename);
  const content = [
    h('span', { class: 'card-picture' }, kind === 'image' ? thumbnail(view) : icon(mediaType(attachment) === 'text/calendar' ? 'calendar' : 'file')),
    h('span', { class: 'card-words' },
      h('bdi', { class: 'card-name truncate' }, name),
      h('span', { class: 'card-type soft number' }, h('bdi', {}, visible(shortType(attachment))), ' · ', size(attachment.size))),
  ];
  const open = () => openViewer(message, message.attachments.filter((one) => isListed(one) && attachmentKind(one) !== null), attachment);
  const title = `${name} (${visible(attachment['content-type'])})`;
  return h('li', { class: 'card' },
    kind ? h('button', { class: 'card-main', type: 'button', title: `Open ${title}`, onclick: open }, ...content) : h('a', { class: 'card-main', href: download, download: true, title: `Download ${title}` }, ...content),
    h('a', { class: 'card-download button plain', href: download, download: true, 'aria-label': `Download ${name}`, title: 'Download' }, icon('download')));
}

/**
 * Returns the type in one word: the extension of the file, or the subtype.
 * @param {Attachment} attachment
 */
function shortType(attachment) {
  const extension = /\.([a-z0-9]{1,5})$/iu.exec(attachment.filename)?.[1];
  return (extension ?? mediaType(attachment).split('/').at(-1) ?? '').toUpperCase();
}

/** @param {string} view */
function thumbnail(view) {
  const image = h('img', { src: view, alt: '', loading: 'lazy', decoding: 'async' });
  image.addEventListener('error', () => image.replaceWith(icon('file')));
  return image;
}
