// What matrix units make of a float32 before they multiply.

// tf32 keeps ten bits of the fraction: the nearest, of two that are as near the one farther from zero.
DEVICE float tf32(float v) {
  unsigned b = AS_BITS(v);
  return (b & 0x7f800000u) == 0x7f800000u ? v : AS_FLOAT((b + 0x1000u) & 0xffffe000u);
}

// bfloat16 keeps seven: the nearest, of two that are as near the even one.
DEVICE float bf16(float v) {
  unsigned b = AS_BITS(v);
  return (b & 0x7f800000u) == 0x7f800000u ? v : AS_FLOAT((b + 0x7fffu + (b >> 16 & 1)) & 0xffff0000u);
}

// pair is two values that are rounded to bfloat16, as one word.
DEVICE unsigned pair(float low, float high) { return AS_BITS(low) >> 16 | (AS_BITS(high) & 0xffff0000u); }
