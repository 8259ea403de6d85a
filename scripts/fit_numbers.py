#!/usr/bin/env python3
"""Fits the polynomials of compiler/numbers/NumbersCoefficients.def and prints that file.

    scripts/fit_numbers.py > compiler/numbers/NumbersCoefficients.def     (needs the Python package mpmath; two minutes)

Each polynomial is the minimax one of its weight on its interval (Remez exchange, or Lawson's weights), found coefficient by coefficient: the
lowest is rounded to the format, the others are fitted again with it fixed, and so on, so that the error after rounding
stays near the minimax error.  The error stands next to each row.
"""
import mpmath as mp

mp.mp.dps = 40


def rounded(c, bits):
    """c rounded to nearest even with `bits` bits of significand."""
    if c == 0:
        return mp.mpf(0)
    m, e = mp.frexp(c)
    scaled = mp.ldexp(m, bits)
    n = mp.nint(scaled)  # ties do not occur
    return mp.ldexp(n, e - bits)


def remez(f, weight, basis, low, high, iterations=12, grid=1500):
    """Coefficients c of sum c[k] * basis[k](x) with the smallest max |weight(x) * (f(x) - sum)| on [low, high]."""
    n = len(basis)
    mid, half = (low + high) / 2, (high - low) / 2
    points = [mid - half * mp.cos(mp.pi * (2 * i + 1) / (2 * (n + 1))) for i in range(n + 1)]
    xs = [mid - half * mp.cos(mp.pi * i / grid) for i in range(grid + 1)]
    table = [(x, f(x), weight(x), [b(x) for b in basis]) for x in xs]
    coefficients = None
    worst = None
    for _ in range(iterations):
        rows = mp.matrix(n + 1, n + 1)
        right = mp.matrix(n + 1, 1)
        for i, x in enumerate(points):
            for k in range(n):
                rows[i, k] = basis[k](x)
            rows[i, n] = (-1) ** i / weight(x)
            right[i] = f(x)
        solution = mp.lu_solve(rows, right)
        coefficients = [solution[k] for k in range(n)]
        errors = [w * (y - sum(c * v for c, v in zip(coefficients, vs))) for _, y, w, vs in table]
        # The extremum of each stretch of equal sign.
        extrema = []
        for (x, *_), e in zip(table, errors):
            if extrema and (extrema[-1][1] >= 0) == (e >= 0):
                if abs(e) > abs(extrema[-1][1]):
                    extrema[-1] = (x, e)
            else:
                extrema.append((x, e))
        worst = max(abs(e) for _, e in extrema)
        while len(extrema) > n + 1:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        if len(extrema) < n + 1:
            break
        points = [x for x, _ in extrema]
        if min(abs(e) for _, e in extrema) > worst * mp.mpf("0.999"):
            break
    return coefficients, worst


def lawson(f, weight, basis, low, high, iterations=30, grid=160):
    """As remez, by reweighted least squares: for bases that all vanish at a point inside the interval (no Haar system)."""
    mid, half = (low + high) / 2, (high - low) / 2
    xs = [mid - half * mp.cos(mp.pi * (i + mp.mpf("0.5")) / grid) for i in range(grid)]
    table = [(f(x) * weight(x), [b(x) * weight(x) for b in basis]) for x in xs]
    masses = [mp.mpf(1)] * grid
    n = len(basis)
    best, least = None, mp.inf
    for _ in range(iterations):
        normal, right = mp.matrix(n, n), mp.matrix(n, 1)
        for (y, vs), m in zip(table, masses):
            for i in range(n):
                t = m * vs[i]
                right[i] += t * y
                for k in range(i + 1):
                    normal[i, k] += t * vs[k]
        for i in range(n):
            for k in range(i):
                normal[k, i] = normal[i, k]
        solution = mp.lu_solve(normal, right)
        errors = [abs(y - sum(solution[k] * vs[k] for k in range(n))) for y, vs in table]
        worst = max(errors)
        if worst < least:
            best, least = [solution[k] for k in range(n)], worst
        masses = [m * e / worst for m, e in zip(masses, errors)]
        total = sum(masses)
        masses = [m / total for m in masses]
    return best, least


def fit(name, comment, f, weight, powers, low, high, bits):
    """One row: coefficients of x**powers[k], lowest power first, each exact in `bits` bits."""
    low, high = mp.mpf(low), mp.mpf(high)
    fixed = []
    for k in range(len(powers)):
        rest = powers[k:]
        target = lambda x: f(x) - sum(c * x ** p for c, p in fixed)
        method = lawson if low < 0 and k > 0 else remez
        coefficients, _ = method(target, weight, [lambda x, p=p: x ** p for p in rest], low, high)
        fixed.append((rounded(coefficients[0], bits), rest[0]))
    grid = [low + (high - low) * i / 4000 for i in range(4001)]
    worst = max(abs(weight(x) * (f(x) - sum(c * x ** p for c, p in fixed))) for x in grid)
    values = ", ".join((float(c).hex()) for c, _ in fixed)
    print(f"// {comment}; largest error 2^{mp.nstr(mp.log(worst, 2), 4)} on [{mp.nstr(low, 4)}, {mp.nstr(high, 4)}]")
    print(f"KILN_POLYNOMIAL({name}, {values})")


def tail(g, terms, start):
    """A function given by its series near zero: sum over k >= start of terms(k) * x**(k - start)."""
    def h(x):
        if abs(x) < mp.mpf("1e-4"):
            return mp.fsum(terms(k) * x ** (k - start) for k in range(start, start + 12))
        return g(x)
    return h


def main():
    print("// Made by scripts/fit_numbers.py: KILN_POLYNOMIAL(name, coefficients, lowest power first).  Do not edit.")
    ln2 = mp.log(2)
    one = lambda x: mp.mpf(1)
    series = lambda k: 1 / mp.factorial(k)
    # exp(r) = 1 + r + r^2 P(r), relative error of the whole.
    exp_tail = tail(lambda x: (mp.exp(x) - 1 - x) / x ** 2, series, 2)
    exp_weight = lambda x: x ** 2 / mp.exp(x) + mp.mpf("1e-12")
    fit("exp32", "exp(r) = 1 + r + r^2 P(r), relative", exp_tail, exp_weight, list(range(5)), -0.3475, 0.3475, 24)
    # expm1(r) = r + r^2 P(r), relative to expm1(r).
    expm1_weight = lambda x: (x ** 2 / mp.expm1(x) if abs(x) > mp.mpf("1e-9") else x) + mp.mpf("1e-9")
    fit("expm1_32", "expm1(r) = r + r^2 P(r), relative", exp_tail, lambda x: abs(expm1_weight(x)), list(range(6)), -0.42, 0.42, 24)
    # 2^f = 1 + f P(f).
    exp2_tail = tail(lambda x: (mp.power(2, x) - 1) / x, lambda k: ln2 ** k / mp.factorial(k), 1)
    fit("exp2_32", "2^f = 1 + f P(f), relative", exp2_tail, lambda x: abs(x) / mp.power(2, x) + mp.mpf("1e-12"), list(range(6)), -0.502, 0.502, 24)
    # log(1+f) = f + f^2 P(f), relative.
    log_series = lambda k: mp.mpf((-1) ** (k + 1)) / k
    log_tail = tail(lambda x: (mp.log1p(x) - x) / x ** 2, log_series, 2)
    log_weight = lambda x: abs(x ** 2 / mp.log1p(x)) if abs(x) > mp.mpf("1e-9") else mp.mpf("1e-9")
    third = mp.mpf("0.33334")
    fit("log32", "log(1+f) = f + f^2 P(f), relative", log_tail, lambda x: log_weight(x) + mp.mpf("1e-9"), list(range(9)), -third, third, 24)
    # atanh(s)/s - 1 over s^2, in s^2, for pow: 2/ln2 * atanh(s) = 2/ln2 (s + s^3 P(s^2)).
    atanh_tail = tail(lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda k: mp.mpf(1) / (2 * k + 1), 1)
    scale = 2 / ln2
    fit("atanh32", "2/ln 2 (atanh(s) - s) = s^3 P(s^2), relative to 2/ln 2 atanh(s)", lambda z: scale * atanh_tail(z), lambda z: z / scale + mp.mpf("1e-12"),
        list(range(4)), 0, 0.0404, 24)
    # tanh(x) = x + x^3 P(x^2).
    tanh_tail = lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > mp.mpf("1e-6") else -mp.mpf(1) / 3 + 2 * z / 15 - 17 * z ** 2 / 315
    fit("tanh32", "tanh(x) = x + x^3 P(x^2), relative", tanh_tail, lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)) + mp.mpf("1e-9") if z > 0 else mp.mpf("1e-9"),
        list(range(5)), 0, mp.mpf("0.56") ** 2, 24)
    # erf(x) = x + x P(x^2) for small x, 1 - exp(-x Q(x)) for large.
    erf_small = lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1 if z > mp.mpf("1e-8") else 2 / mp.sqrt(mp.pi) * (1 - z / 3) - 1
    fit("erf32", "erf(x) = x + x P(x^2), relative", erf_small, lambda z: 1 / (erf_small(z) + 1), list(range(7)), 0, mp.mpf("0.93") ** 2, 24)
    erf_large = lambda x: -mp.log(mp.erfc(x)) / x
    fit("erfTail32", "erfc(x) = exp(-x Q(x)), absolute", erf_large, lambda x: mp.erfc(x) * x, list(range(8)), 0.91, 4.0, 24)
    # sin(r) = r + r^3 P(r^2), cos(r) = 1 - r^2/2 + r^4 Q(r^2).
    quarter = (mp.pi / 4) ** 2 * mp.mpf("1.01")
    sin_tail = lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > mp.mpf("1e-6") else -mp.mpf(1) / 6 + z / 120 - z ** 2 / 5040
    cos_tail = lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2 if z > mp.mpf("1e-4") else mp.mpf(1) / 24 - z / 720 + z ** 2 / 40320
    fit("sin32", "sin(r) = r + r^3 P(r^2), relative", sin_tail, lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)) + mp.mpf("1e-9") if z > 0 else mp.mpf("1e-9"),
        list(range(4)), 0, quarter, 24)
    fit("cos32", "cos(r) = 1 - r^2/2 + r^4 P(r^2), relative", cos_tail, lambda z: z ** 2 / mp.cos(mp.sqrt(z)) + mp.mpf("1e-12"), list(range(3)), 0, quarter, 24)
    # f64.
    fit("exp64", "exp(r) = 1 + r + r^2 P(r), relative", exp_tail, exp_weight_64, list(range(11)), -0.34658, 0.34658, 53)
    atanh_weight = lambda z: z + mp.mpf("1e-20")
    fit("atanh64", "2 (atanh(s) - s) = s^3 P(s^2), relative to 2 atanh(s)", lambda z: 2 * atanh_tail(z), lambda z: atanh_weight(z) / 2, list(range(9)), 0, 0.0404, 53)


exp_weight_64 = lambda x: x ** 2 / mp.exp(x) + mp.mpf("1e-20")

if __name__ == "__main__":
    main()
