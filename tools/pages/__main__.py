"""Write all pages anew."""

from tools.pages.marks import pages, written

for path in pages():
    text = written(path)
    if text != path.read_text(encoding="utf8"):
        path.write_text(text, encoding="utf8")
        print(path)
