// The summary to share: one press puts it where it can be pasted from.

function listenToSharing() {
  const button = byId('copy'), text = byId('summary');
  button?.addEventListener('click', async () => {
    getSelection().selectAllChildren(text);  // to be copied by hand where the browser forbids the rest
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
}
