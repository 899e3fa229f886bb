"""Copies the vocabulary of a GGUF file without its weights: `vocabulary.py IN.gguf OUT.gguf` (needs the PyPI package `gguf`)."""

import sys

from gguf import GGUFReader, GGUFValueType, GGUFWriter

reader = GGUFReader(sys.argv[1])
writer = GGUFWriter(sys.argv[2], reader.fields["general.architecture"].contents())
for key, field in reader.fields.items():
    if key.startswith("tokenizer."):
        kind = field.types[0]
        if kind == GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), kind)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.close()
