"""A disk as a power cut leaves it, rebuilt from the calls that tests/faults/interpose.cpp wrote down.

What is in a file is safe once the file is synced, the names in a folder once the folder is; all else may or may not
have reached the disk."""
import hashlib
import os
import pathlib


class Node:
    """A file (bytes), a folder (dict of nodes) or a link (str), as the program sees it and as it is on the disk."""

    def __init__(self, content):
        self.now = content
        self.synced = b"" if isinstance(content, bytes) else {} if isinstance(content, dict) else content

    def sync(self):
        self.synced = dict(self.now) if isinstance(self.now, dict) else self.now


class Disk:
    """What is below a folder; at first what `tree` says (see read_tree), all of it synced."""

    def __init__(self, root, tree):
        self.root = pathlib.Path(root)
        self.top = Node({})
        for path, content in sorted(tree.items()):
            if path.parts:
                self._folder(self.root / path)[path.name] = Node({} if content is None else content)
        for path in tree:
            self._find(self.root / path).sync()

    def _find(self, path):
        node = self.top
        for part in pathlib.Path(path).relative_to(self.root).parts:
            node = node.now[part]
        return node

    def _folder(self, path):
        return self._find(pathlib.Path(path).parent).now

    def names(self, folder):
        return list(self._find(folder).now)

    def apply(self, line):
        """One line of the log."""
        call, code, path, *more = line.split(" ")
        name = os.path.basename(path)
        if code != "0" or call in ("open", "mmap"):
            return
        if call == "create":
            self._folder(path)[name] = Node(b"")
        elif call == "mkdir":
            self._folder(path)[name] = Node({})
        elif call == "symlink":
            self._folder(path)[name] = Node(more[0])
        elif call == "remove":
            del self._folder(path)[name]
        elif call == "rename":
            self._folder(more[0])[os.path.basename(more[0])] = self._folder(path).pop(name)
        elif call == "empty":
            self._find(path).now = b""
        elif call == "truncate":
            self._find(path).now = self._find(path).now[:int(more[0])]
        elif call == "write":
            node, offset, data = self._find(path), int(more[0]), bytes.fromhex(more[1])
            node.now = node.now[:offset] + data + node.now[offset + len(data):]
        elif call == "fsync":
            self._find(path).sync()
        else:
            raise ValueError(line)

    # What is on the disk, as {path: bytes, str of a link or None for a folder}. `keeps_names` and `keeps_data` say of
    # a folder, and of a file, whether changes that were not synced are there all the same.
    def view(self, keeps_names, keeps_data):
        found = {}

        def visit(node, path):
            if isinstance(node.now, dict):
                found[path] = None
                for name, child in sorted((node.now if keeps_names() else node.synced).items()):
                    visit(child, path / name)
            elif isinstance(node.now, bytes):
                found[path] = node.now if keeps_data() else node.synced
            else:
                found[path] = node.now

        visit(self.top, pathlib.Path())
        return found


def write_tree(tree, root):
    for path, content in tree.items():
        if content is None:
            (root / path).mkdir(parents=True, exist_ok=True)
        elif isinstance(content, bytes):
            (root / path).write_bytes(content)
        else:
            (root / path).symlink_to(content)


def read_tree(root):
    root = pathlib.Path(root)
    found = {pathlib.Path(): None}
    for path in root.rglob("*"):
        name = path.relative_to(root)
        found[name] = os.readlink(path) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return found


def digest(tree):
    return hashlib.sha256(repr(sorted((str(k), v) for k, v in tree.items())).encode()).hexdigest()
