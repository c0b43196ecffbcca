onmessage = async ({ data }) => {
  postMessage(
    await fetch(data, { credentials: 'include' }).then(
      answer => answer.text(),
      error => `refused: ${error.name}`
    )
  );
};
