"""One module a transcript format; `base` is what each of them promises."""
