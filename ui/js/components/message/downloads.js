// The files that a message can be saved as.

/** @import { Message } from '../../types.js' */
/** @import { MenuItem } from '../menu-button.js' */

import * as paths from '../../lib/paths.js';
import { plural, size } from '../../lib/format.js';
import { attachmentLinks, isListed } from './attachment-links.js';

/** The maximum length of the subject in the file name. */
const MAX_NAME_LENGTH = 80;

/** The maximum number of attachments that the menu lists. */
const MAX_ATTACHMENTS = 20;

/**
 * Returns the entries of the download menu.
 * @param {Message} message
 * @returns {MenuItem[]}
 */
export function downloads(message) {
  const { id, html, text, size: bytes, attachments } = message;
  const files = attachments.filter(isListed);
  const total = files.reduce((sum, file) => sum + file.size, 0);
  return [
    { label: 'Source (.eml)', detail: size(bytes), href: paths.source(id, { download: true }), download: true },
    ...(html ? [{ label: 'HTML (.html)', href: paths.body(id, 'html', { download: true }), download: true }] : []),
    ...(text.trim() ? [{ label: 'Text (.txt)', href: paths.body(id, 'text', { download: true }), download: true }] : []),
    ...(files.length > 0 ? [{ label: 'All attachments (.zip)', detail: `${plural(files.length, 'file')}, ${size(total)}`, href: paths.attachmentsZip(id), download: true }] : []),
    ...files.slice(0, MAX_ATTACHMENTS).map((file) => ({ label: file.filename, detail: size(file.size), href: attachmentLinks(message, file).download, download: true })),
  ];
}

/**
 * Returns a file name without characters that an operating system forbids.
 * @param {{ subject: string, id: string }} message
 * @param {string} extension
 */
export function fileName({ subject, id }, extension) {
  const words = subject.slice(0, MAX_NAME_LENGTH).normalize().replace(/[\p{C}\p{Z}\\/:*?"<>|]+/gu, ' ').replace(/^[. ]+|[. ]+$/gu, '');
  return `${words || `message ${id}`}.${extension}`;
}
