<?php
// A program for profiles of Xdebug: recursion, callbacks, functions of PHP itself.

function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }

function even($n) { return $n == 0 ? true : odd($n - 1); }
function odd($n) { return $n == 0 ? false : even($n - 1); }

class Shop
{
	private $orders = [];

	function add($name)
	{
		$this->orders[] = strtoupper($name);
		return count($this->orders);
	}

	function sorted()
	{
		usort($this->orders, fn($a, $b) => strcmp($a, $b));
		return implode(",", array_map('trim', $this->orders));
	}
}

function work($shop, $times)
{
	for ($i = 0; $i < $times; $i++)
		$shop->add(str_repeat("x", $i % 7));
	return strlen($shop->sorted());
}

$shop = new Shop();
echo work($shop, 20) + work($shop, 30) + fib(9) + (even(10) ? 1 : 0), "\n";
