import * as React from 'react';

/**
 * What is to be known of what is shown, or why nothing is: facts, and no faults. Empty notes are left out.
 */
export function Notes({ notes }: { notes: readonly string[] }): JSX.Element {
  return (
    <>
      {notes.filter(Boolean).map(note => (
        <p key={note} className="jp-HyperPod-Table-note" role="note">
          {note}
        </p>
      ))}
    </>
  );
}
