// Folders of mailboxes. The name of a folder is that of its owner, a comma, and a name of its own: `james,Sent`.

/**
 * Returns the name of the mailbox that a folder belongs to, or the name itself if it is not that of a folder.
 * @param {string} mailbox
 */
export const ownerOf = (mailbox) => mailbox.split(',', 1)[0];

/**
 * Returns the name of a folder without its owner, or null if the mailbox is not a folder.
 * @param {string} mailbox
 */
export const folderOf = (mailbox) => (mailbox.includes(',') ? mailbox.slice(mailbox.indexOf(',') + 1) : null);

/**
 * Returns the names with each folder after its owner, which is added if it is missing. The owners are in the order in which they or one
 * of their folders come first, and the folders of an owner are in the order of their names.
 * @param {string[]} mailboxes
 */
export function withOwners(mailboxes) {
  /** @type {Map<string, string[]>} */
  const folders = new Map();
  for (const name of mailboxes) {
    const owner = ownerOf(name);
    const own = folders.get(owner) ?? [];
    folders.set(owner, own);
    if (name !== owner) own.push(name);
  }
  return [...folders].flatMap(([owner, own]) => [owner, ...own.sort((a, b) => a.localeCompare(b))]);
}
