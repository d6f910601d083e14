// SPDX-License-Identifier: Apache-2.0
// Functions of every kind that a native frame may lie in: inlined into each other, templates, in a
// namespace and in none, static, a lambda, in a part that is unlikely to run.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace shapes {
struct Area {
	double width, height;
	static inline __attribute__((always_inline)) double scaled(double x)
	{
		volatile double kept = x * 2;
		return kept + 1;
	}
	inline double size() const
	{
		return scaled(width) * scaled(height);
	}
};

template <typename T, int N> __attribute__((noinline)) T
sum_of(const std::vector<T> &all)
{
	T sum = {};
	for (const T &one : all)
		sum += one * N;
	return sum;
}

namespace {
__attribute__((noinline)) double
hidden(const Area &area)
{
	if (area.width < 0) {
		std::fprintf(stderr, "negative: %f\n", area.width);
		std::abort();
	}
	return area.size();
}
} // namespace
} // namespace shapes

static __attribute__((noinline)) int
with_lambda(int n)
{
	auto twice = [n](int x) __attribute__((noinline)) { return x * n; };
	return twice(n) + twice(n + 1);
}

extern "C" __attribute__((noinline)) double
plain_c(double width)
{
	return shapes::hidden(shapes::Area{ width, 2 }) + with_lambda((int)width);
}

int
main(int argc, char **)
{
	std::vector<double> all(10, argc);
	std::string text = std::to_string(plain_c(shapes::sum_of<double, 3>(all)));
	std::vector<long> others(4, argc);
	std::printf("%s %ld\n", text.c_str(), shapes::sum_of<long, 7>(others));
	return 0;
}
