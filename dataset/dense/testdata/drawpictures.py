"""Draws pictures from a seed: drawpictures.py COUNT SEED. A line of JSON for each has the file, its mode, the pixels that Pillow
reads over white, and how far others may be off: by a rounding of alpha, or by what JPEG leaves open."""
import base64
import io
import json
import random
import sys

from PIL import Image

count, r = int(sys.argv[1]), random.Random(int(sys.argv[2]))
for _ in range(count):
    size = r.randint(1, 20), r.randint(1, 20)
    mode = r.choice(["1", "L", "LA", "P", "P transparent", "RGB", "RGBA", "I;16", "JPEG L", "JPEG RGB"])
    kind = mode.removeprefix("JPEG ").split()[0]
    channels = {"LA": 2, "RGB": 3, "RGBA": 4, "I;16": 2}.get(kind, 1)
    pixels = r.randbytes(size[0] * size[1] * channels) if kind != "1" else r.randbytes((size[0] + 7) // 8 * size[1])
    picture, out, more = Image.frombytes(kind, size, pixels), io.BytesIO(), {}
    if kind == "P":
        picture.putpalette(r.randbytes(768))
        if mode != kind:
            more["transparency"] = r.randrange(256) if r.random() < 0.5 else r.randbytes(256)
    if mode.startswith("JPEG"):
        picture.save(out, "JPEG", quality=r.randint(30, 100), subsampling=0, progressive=r.random() < 0.5)
    else:
        picture.save(out, "PNG", compress_level=r.randint(0, 9), **more)
    read = Image.open(io.BytesIO(out.getvalue()))
    if kind == "I;16":  # Pillow cuts those above 255 off
        read = Image.frombytes("L", size, pixels[1::2])
    whole = Image.alpha_composite(Image.new("RGBA", size, "white"), read.convert("RGBA")).convert("RGB")
    print(json.dumps({
        "mode": mode, "file": base64.b64encode(out.getvalue()).decode(), "pixels": base64.b64encode(whole.tobytes()).decode(),
        "off": 4 if mode == "JPEG RGB" else 1 if mode in ("LA", "RGBA", "P transparent", "JPEG L") else 0,
    }))
