// Names of files, in short. Those of functions come with the data.

/** @param {string} path */
function baseName(path) {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}
