// Deleting all mail of all mailboxes, which is asked about once and cannot be undone.

import * as api from '../lib/api.js';
import { plural } from '../lib/format.js';
import { ask, toast } from '../lib/talk.js';

/** Returns whether it was done. */
export async function deleteEverything() {
  const isSure = await ask({ title: 'Delete everything?', text: 'All mail in all mailboxes is deleted. This cannot be undone.', yes: 'Delete everything', danger: true });
  if (!isSure) return false;
  try {
    const { deleted } = await api.purgeAll();
    toast(`Deleted ${plural(deleted, 'message')}.`);
    return true;
  } catch (error) {
    toast(`Not everything could be deleted. ${api.sentence(error)}`, { bad: true });
    return false;
  }
}
